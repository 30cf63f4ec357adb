import type { Channel } from '../../domain/records/channel.ts'
import type { OfferedTool } from '../../domain/tool-use.ts'
import type { Codec, UpstreamCodec } from '../../protocols/codec.ts'
import type { Conversation, SharedField } from '../../protocols/conversation.ts'
import type { PromptLevels } from '../../protocols/prompt-levels.ts'
import type { Capabilities } from '../../protocols/model-capabilities.ts'

/** A dialect that calls of other dialects are converted to. */
export interface UpstreamDialect {
  readonly codec: UpstreamCodec
  /** Members of its requests that are prompt. */
  readonly prompt: PromptLevels
  /** Path of its endpoint, below a channel's base URL. `model`: the name that the upstream knows. */
  readonly path: (model: string, stream: boolean) => string
  /** Headers of a converted request, beside those of the channel: names and values in turn. */
  readonly headers: readonly string[]
  /** A thinking suffix of the model's name becomes a field of the request: upstreams get the plain name. */
  readonly hasThinkingField: boolean
  /** Whether a channel's upstream takes `cache_control`. */
  takesCacheMarks(channel: Channel): boolean
  /**
   * Whether a channel's upstream takes a field that chat and responses share; absent where its codec knows.
   */
  readonly takesSharedField?: (field: SharedField, channel: Channel, capabilities: Capabilities) => boolean
  /** The web search that an upstream is offered for a conversation; undefined where it is left out. */
  search(conversation: Conversation, model: string): OfferedTool | undefined
  /** The maximum of output tokens that an upstream will be told; undefined where it is told none. */
  outputMaximum(conversation: Conversation, capabilities: Capabilities): number | undefined
}

/** A dialect in calls whose client and channel speak different ones. */
export interface ConvertedDialect extends UpstreamDialect {
  readonly codec: Codec
  /** The first event of a stream tells a client the tokens of the prompt. */
  readonly beginsWithPrompt: boolean
  /** Clients take the last part for the answer: no thought that only signs a text may come behind it. */
  readonly endsWithAnswer: boolean
}
