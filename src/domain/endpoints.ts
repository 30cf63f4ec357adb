import type { ServedProtocol } from '@sluice/wire/protocols'

interface EndpointRow {
  /** Whether a channel's `system_prompt` and `param_override` apply to its requests. */
  readonly isEdited: boolean
}

/** Endpoints of calls, by their names in the field `endpoints` of model lists and in the usage log. */
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

/** Endpoint of a call in the usage log; empty for the estimated charge of a lost node. */
export type CallKind = Endpoint | ''
