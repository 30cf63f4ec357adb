/** Texts in English: an edit conflict. */
export const conflict = {
  title: 'Changed meanwhile',
  text: 'Somebody else has saved changes since you opened this. Nothing of yours is saved yet.',
  same: 'Somebody else has saved changes since you opened this, in other fields or with the same values.',
  field: 'Field',
  mine: 'Yours',
  theirs: 'Theirs',
  take: 'Take theirs',
  overwrite: 'Overwrite',
}
