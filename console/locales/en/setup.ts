/** Texts in English: the page Setup. */
export const setup = {
  title: 'Set up Sluice',
  steps: 'Setup steps',
  hint: 'Four steps to a first call and what it cost. Each is ticked by what the gateway has, however it came there.',
  skip: 'Skip setup',
  toOverview: 'Go to the overview',
  done: 'Done',
  names: {
    channel: 'Add a channel',
    key: 'Create a key',
    call: 'Make a call',
    cost: 'See its cost',
  },
  texts: {
    channel: 'Where calls go: a provider’s address, and your key for it.',
    key: 'What programs call this gateway with.',
    call: 'Say hello to a model, with that key.',
    cost: 'Each call is in the log, with what it cost line by line.',
  },
  actions: {
    channel: 'Choose a provider',
    key: 'Name the key',
    call: 'Open the playground',
    cost: 'Open the call',
  },
}
