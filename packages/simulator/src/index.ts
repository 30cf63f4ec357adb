export { chatUpstream } from './chat.ts'
export { DEMO_MODELS } from './demo-models.ts'
export {
  type McpServerBehaviour,
  type Offered,
  type RunningMcpServer,
  serveMcp,
  textTool,
  type ToolCall,
  ToolError,
} from './mcp/mcp-server.ts'
export { messagesUpstream } from './messages.ts'
export { PromptCache } from './prompt-cache.ts'
export { Refusal } from './refusal.ts'
export { serveUpstream } from './server.ts'
export { type Simulator, type SimulatorOptions, startSimulator } from './start-simulator.ts'
export {
  bearerToken,
  type Call,
  type Frame,
  bodyOfPost,
  type Reply,
  type ReplyTimeAndIds,
  type Upstream,
} from './upstream.ts'
