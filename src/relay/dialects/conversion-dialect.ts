import type { Channel } from '../../domain/records/channel.ts'
import type { OfferedTool } from '@sluice/wire/tool-use'
import type { Codec, UpstreamCodec } from '@sluice/wire/codec'
import type { Conversation, SharedField } from '@sluice/wire/conversation'
import type { PromptLevels } from '@sluice/wire/prompt-levels'
import type { Capabilities } from '@sluice/wire/model-capabilities'

/** A dialect to which calls of other dialects are converted. */
export interface UpstreamDialect {
  readonly codec: UpstreamCodec
  /** Describes which members of its requests are part of the prompt. */
  readonly prompt: PromptLevels
  /** Path of its endpoint, relative to a channel's base URL. `model`: the upstream's name for it. */
  readonly path: (model: string, stream: boolean) => string
  /** Headers of a converted request in addition to those of the channel: names and values in turn. */
  readonly headers: readonly string[]
  /**
   * Whether a thinking suffix of the model's name becomes a field of the request, so that upstreams get the
   * plain name.
   */
  readonly hasThinkingField: boolean
  /** Reports whether a channel's upstream accepts `cache_control`. */
  takesCacheMarks(channel: Channel): boolean
  /**
   * Reports whether a channel's upstream accepts a field that chat and responses share; absent if the codec
   * decides.
   */
  readonly takesSharedField?: (field: SharedField, channel: Channel, capabilities: Capabilities) => boolean
  /** The web search tool offered to an upstream for a conversation; undefined if it is left out. */
  search(conversation: Conversation, model: string): OfferedTool | undefined
  /** The maximum of output tokens that will be sent to an upstream; undefined if none is sent. */
  outputMaximum(conversation: Conversation, capabilities: Capabilities): number | undefined
}

/** A dialect in calls whose client and channel speak different ones. */
export interface ConversionDialect extends UpstreamDialect {
  readonly codec: Codec
  /** Whether the first event of a stream contains the tokens of the prompt. */
  readonly beginsWithPrompt: boolean
  /**
   * Whether clients treat the last part as the answer, so that it must not be followed by a thought that only
   * signs a text.
   */
  readonly endsWithAnswer: boolean
}
