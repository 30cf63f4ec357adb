/** Texts in English: the command palette. */
export const palette = {
  title: 'Command palette',
  search: 'Search pages and actions',
  placeholder: 'Search pages, actions, keys, models, calls',
  searching: 'Searching…',
  empty: 'Nothing found.',
  found: {
    key: (name: string) => `Key ${name}`,
    model: (name: string) => `Model ${name}`,
    channel: (name: string) => `Channel ${name}`,
    user: (name: string) => `User ${name}`,
    group: (name: string) => `Group ${name}`,
    call: (model: string) => `Call of ${model}`,
  },
  commands: {
    disable: (name: string) => `Disable channel ${name}`,
    test: (name: string) => `Test channel ${name}`,
    price: (name: string) => `Edit price of ${name}`,
    spend: (name: string) => `Spend of ${name}`,
  },
  tested: (name: string) => `Channel “${name}” answered`,
  testFailed: (name: string, message: string) => `Channel “${name}” failed: ${message}`,
  section: (title: string) => `Settings: ${title}`,
}
