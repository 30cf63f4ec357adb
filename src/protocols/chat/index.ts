/** The chat-completions wire format, as far as the rest of the gateway sees it. */
export { readUpstreamError } from '../upstream-error.ts'
export { chatErrorBody, chatErrorFrame } from './errors.ts'
export { type GatedRequest, gateChatRequest } from './gate.ts'
export { promptText } from './prompt.ts'
export type { ReplyFacts } from '../reply-facts.ts'
export { usageOfReply } from './reply.ts'
export { type ChatRequest, readChatRequest } from './request.ts'
export { ChatTap } from './tap.ts'
