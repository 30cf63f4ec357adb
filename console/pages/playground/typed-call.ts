import type { Protocol } from './answer.ts'
import type { Thinking } from './typed-request.ts'

/** The settings of a call as typed; for an empty text the model's default applies. */
export interface TypedCall {
  readonly protocol: Protocol | 'both'
  readonly system: string
  readonly thinking: Thinking
  readonly temperature: string
  readonly topP: string
  readonly maxTokens: string
  readonly tools: string
  readonly voice: string
  readonly size: string
  readonly stream: boolean
}

export const NO_TYPED_CALL: TypedCall = {
  protocol: 'chat',
  system: '',
  thinking: 'off',
  temperature: '',
  topP: '',
  maxTokens: '',
  tools: '',
  voice: '',
  size: '',
  stream: true,
}
