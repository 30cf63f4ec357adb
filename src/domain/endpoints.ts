import type { ServedProtocol } from './protocols.ts'

interface EndpointRow {
  /** Whether channels change its requests by their `system_prompt` and `param_override`. */
  readonly isEdited: boolean
}

/** Endpoints of calls, as the field `endpoints` of model lists and the usage log name them. */
export const ENDPOINTS = {
  chat: { isEdited: true },
  messages: { isEdited: true },
  responses: { isEdited: true },
  gemini: { isEdited: true },
  completions: { isEdited: true },
  embeddings: { isEdited: false },
  images: { isEdited: false },
  speech: { isEdited: false },
  transcriptions: { isEdited: false },
  moderations: { isEdited: false },
  rerank: { isEdited: false },
} as const satisfies Record<ServedProtocol, EndpointRow> & Record<string, EndpointRow>

/** Endpoint of a call. */
export type Endpoint = keyof typeof ENDPOINTS

/** Endpoint of a call in the usage log; empty in the estimate for a lost node. */
export type CallKind = Endpoint | ''
