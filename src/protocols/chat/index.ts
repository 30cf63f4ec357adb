export {
  type ChatError,
  chatError,
  chatErrorBody,
  chatErrorFrame,
  type ErrorParts,
  readUpstreamError,
  type UpstreamErrorText,
} from './errors.ts'
export { type GatedRequest, gateChatRequest } from './gate.ts'
export { promptBound, type PromptText, promptText } from './prompt.ts'
export { type ReplyFacts, usageOfReply } from './reply.ts'
export { type ChatRequest, readChatRequest } from './request.ts'
export { ChatTap, type StreamError, type TapEnd, type TapOptions, type TapStep } from './tap.ts'
export { readChatUsage } from './usage.ts'
