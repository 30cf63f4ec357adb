/**
 * Names the data that a node has changed and other nodes must evict. It contains no values; nodes read them
 * again.
 */
export type Change =
  | { readonly of: 'tokens'; readonly ids: readonly number[] }
  | { readonly of: 'user'; readonly id: number }
  /** A new key, which other nodes may have cached as unknown. */
  | { readonly of: 'keys' }
  /** Channels, options, groups or prices. */
  | { readonly of: 'settings' }
  /** Unknown changes: everything is evicted. */
  | { readonly of: 'anything' }
