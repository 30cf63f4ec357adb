/** Texts in English: the list of keyboard shortcuts. */
export const shortcuts = {
  title: 'Keyboard shortcuts',
  letters: 'Single letters are shortcuts',
  palette: 'Search pages and actions',
  help: 'This list',
  filter: 'Go to the filter',
  create: 'Begin a new entry',
  rows: 'Next and previous row',
  open: 'Open the row',
  close: 'Close',
  goTo: (page: string) => `Go to ${page}`,
}
