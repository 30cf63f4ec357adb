/** The chat-completions wire format, as far as the rest of the gateway sees it. */
export { chatCodec } from './codec.ts'
export { chatErrorBody, chatErrorFrame } from './errors.ts'
export { gateChatRequest } from './gate.ts'
export { promptText } from './prompt.ts'
export { usageOfReply } from './reply.ts'
export { chatRequestSchema, readChatRequest } from './request.ts'
export { ChatTap } from './tap.ts'
