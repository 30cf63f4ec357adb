import type { Protocol } from './answer.ts'
import type { ThinkingLevel } from './playground-request.ts'

/** The settings of a call as typed; for an empty text the model's default applies. */
export interface CallFormValues {
  readonly protocol: Protocol | 'both'
  readonly system: string
  readonly thinking: ThinkingLevel
  readonly temperature: string
  readonly topP: string
  readonly maxTokens: string
  readonly tools: string
  readonly voice: string
  readonly size: string
  readonly stream: boolean
}

export const EMPTY_CALL_FORM_VALUES: CallFormValues = {
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
