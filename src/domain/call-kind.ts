/** Endpoint of a call, as the field `endpoints` of model lists names it. */
export type Endpoint =
  | 'chat'
  | 'messages'
  | 'responses'
  | 'gemini'
  | 'completions'
  | 'embeddings'
  | 'images'
  | 'speech'
  | 'transcriptions'
  | 'moderations'
  | 'rerank'

/** Endpoint of a call in the usage log; empty in the estimate for a lost node. */
export type CallKind = Endpoint | ''
