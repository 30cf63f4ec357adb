/** The state of a new gateway: what it has, and its newest call. */
export interface SetupState {
  readonly has_channel: boolean
  readonly has_own_key: boolean
  readonly has_call: boolean
  /** The id of the newest call; undefined before the first call, and while it is loading. */
  readonly newestCall: string | undefined
}

export interface SetupStep {
  readonly name: 'channel' | 'key' | 'call' | 'cost'
  readonly isDone: boolean
  /** The path of the page for this step. */
  readonly path: string
}

/**
 * The steps of the setup. A step is done as soon as the gateway has what the step creates, even if another
 * browser or program has created it.
 */
export function setupSteps({
  has_channel,
  has_own_key,
  has_call,
  newestCall,
}: SetupState): readonly SetupStep[] {
  return [
    { name: 'channel', isDone: has_channel, path: '/channels/new?setup=1' },
    { name: 'key', isDone: has_own_key, path: '/keys?new=1&setup=1' },
    { name: 'call', isDone: has_call, path: '/playground?hello=1' },
    { name: 'cost', isDone: has_call, path: newestCall === undefined ? '/logs' : `/logs/${newestCall}` },
  ]
}
