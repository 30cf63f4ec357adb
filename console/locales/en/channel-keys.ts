/** Texts in English: the keys of a channel. */
export const channelKeys = {
  add: 'Add key',
  key: 'Key',
  since: 'Since',
  states: { works: 'Works', set_aside: 'Set aside', retired: 'Retired' },
  because: (state: string, cause: string) => `${state}: ${cause}`,
  retire: 'Retire',
  useAgain: 'Use again',
  remove: 'Remove',
  removeTitle: 'Remove key',
  removeText: (key: string) => `The key ${key} is removed from this channel and cannot be shown again.`,
}
