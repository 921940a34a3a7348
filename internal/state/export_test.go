package state

// UpTo is for tests beside the package.
var UpTo = upTo
