package evidence

// Sizes is how many sizes of a record are judged.
const Sizes = sizes
