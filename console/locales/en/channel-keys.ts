/** Texts in English: the keys of a channel. */
export const channelKeys = {
  add: 'Add key',
  key: 'Key',
  since: 'Since',
  position: 'No.',
  left: 'Left at the provider',
  reset: 'Reset',
  requests: (remaining: string, limit: string | undefined) =>
    limit === undefined ? `${remaining} requests` : `${remaining} of ${limit} requests`,
  tokens: (remaining: string, limit: string | undefined) =>
    limit === undefined ? `${remaining} tokens` : `${remaining} of ${limit} tokens`,
  leastLeft: (percent: number) => `Last hour: at least ${percent} % left`,
  restsUntil: 'Rests until',
  states: { works: 'Works', set_aside: 'Set aside', retired: 'Retired' },
  because: (state: string, cause: string) => `${state}: ${cause}`,
  retire: 'Retire',
  useAgain: 'Use again',
  remove: 'Remove',
  removeTitle: 'Remove key',
  removeText: (key: string) => `The key ${key} is removed from this channel and cannot be shown again.`,
}
