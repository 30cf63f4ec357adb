import type { SetupState } from '../../api/setup.ts'

/** A step of the first run. */
export interface SetupStep {
  readonly name: 'channel' | 'key' | 'call' | 'cost'
  readonly isDone: boolean
  /** Where it is taken. */
  readonly path: string
}

/** The steps, done by what the gateway has. */
export function setupSteps({ hasChannel, hasKey, lastCall }: SetupState): readonly SetupStep[] {
  const hasCall = lastCall !== undefined
  return [
    { name: 'channel', isDone: hasChannel, path: '/channels/new?setup=1' },
    { name: 'key', isDone: hasKey, path: '/keys?new=1&setup=1' },
    { name: 'call', isDone: hasCall, path: '/playground?hello=1' },
    { name: 'cost', isDone: hasCall, path: hasCall ? `/logs/${lastCall}` : '/logs' },
  ]
}
