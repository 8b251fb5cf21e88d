// Package peers compares the packages in compat with the packages whose API they have. It contains
// only tests.
package peers
