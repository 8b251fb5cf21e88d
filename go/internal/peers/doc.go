// Package peers compares the packages below compat with those whose API they have. It has tests only.
package peers
