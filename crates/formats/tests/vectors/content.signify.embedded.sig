untrusted comment: verify with signify.pub
RWQHHk8oFEcRk5uOfjRFJ42Me/Tx7j/n65iXe6RmxSGPKBFKZePK8Gf1Y/TQUd1XdXlz81ZRZjpLRIWWgf/9m8ige6aNBUd+Hw8=
A small file, signed by other programs.
