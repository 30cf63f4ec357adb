/** Public interface of the chat dialect. */
export { chatCodec } from './codec.ts'
export { checkConvertible, completionsCodec } from './completions/codec.ts'
export {
  completionRequestSchema,
  readCompletionRequest,
} from './completions/request.ts'
export { chatErrorBody } from './errors.ts'
export { gateChatRequest } from './gate.ts'
export { CHAT_PROMPT, COMPLETIONS_PROMPT } from './prompt-levels.ts'
export { usageOfReply } from './reply.ts'
export { chatRequestSchema, readChatRequest } from './request.ts'
export { ChatTap } from './tap.ts'
export { chatNames, completionNames } from './names.ts'
export { canSearch } from './web-search.ts'
