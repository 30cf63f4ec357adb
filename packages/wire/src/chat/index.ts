/** Exports of the chat protocol. */
export { chatAnswerForms, completionsAnswerForms, withUsageChunk } from './answer-forms.ts'
export { chatCodec } from './codec.ts'
export { checkConvertibleCompletion, completionsCodec } from './completions/codec.ts'
export {
  completionRequestSchema,
  readCompletionRequest,
} from './completions/request.ts'
export { chatErrorBody } from './errors.ts'
export { writeUsageCounts } from './usage.ts'
export { adaptChatRequest } from './native/adapt-request.ts'
export { CHAT_COMPARISON_RULES, CHAT_PROMPT_RULES, COMPLETIONS_PROMPT_RULES } from './native/prompt.ts'
export { ChatTap, usageOfReply } from './native/tap.ts'
export { chatRequestSchema, readChatRequest } from './native/request.ts'
export { chatFieldNames, completionFieldNames } from './native/field-names.ts'
export { FINISH_REASONS } from './stop-reasons.ts'
export { supportsWebSearch } from './tools.ts'
export { CHAT_REQUEST, COMPLETIONS_REQUEST } from './shape.ts'
