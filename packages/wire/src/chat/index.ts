/** Exports of the chat protocol. */
export { chatCodec } from './codec.ts'
export { checkConvertible, completionsCodec } from './completions/codec.ts'
export {
  completionRequestSchema,
  readCompletionRequest,
} from './completions/request.ts'
export { chatErrorBody } from './errors.ts'
export { writeUsageCounts } from './usage.ts'
export { gateChatRequest } from './native/adapt-request.ts'
export { CHAT_CONVERSATION, CHAT_PROMPT, COMPLETIONS_PROMPT } from './native/prompt.ts'
export { ChatTap, usageOfReply } from './native/tap.ts'
export { chatRequestSchema, readChatRequest } from './native/request.ts'
export { chatNames, completionNames } from './native/field-names.ts'
export { FINISH_REASONS } from './stop-reasons.ts'
export { canSearch } from './tools.ts'
