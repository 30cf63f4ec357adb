/**
 * Names the data that a node has changed and other nodes must evict. Contains no values: nodes read them
 * again.
 */
export type Change =
  | { readonly of: 'tokens'; readonly ids: readonly number[] }
  | { readonly of: 'user'; readonly id: number }
  /** A new key, which may be cached as unknown. */
  | { readonly of: 'keys' }
  /** Channels, options, groups or prices. */
  | { readonly of: 'settings' }
  /** Unknown changes, so that everything is evicted. */
  | { readonly of: 'anything' }
