import type { Node, ScannedObject } from './json/scanned-object.ts'
import type { MediaTokens } from './prompt-tokens.ts'

/** Why the texts of a member never reach a model as a part of its prompt, or are counted elsewhere. */
type Reason =
  /** How the answer is drawn, and how long it may be. */
  | 'sampling'
  /** How the request is served: which model, streamed, stored, at which tier. */
  | 'service'
  /** Name of something that is kept or was made elsewhere; what is kept counts by itself. */
  | 'id'
  /** For the client's own books, or the provider's. */
  | 'metadata'
  /** One word that tells which form an object has. */
  | 'kind'
  /** Proof that a model made what stands beside it. */
  | 'signature'
  /** Repeated from an answer, and not read again by the provider's own rules. */
  | 'of the answer'

/** Reading of a known member's value: as texts, JSON or encrypted text, or by the level of that name. */
export type Reading = string

/** Members of objects of one kind. Any member that is in neither list counts as JSON, its name included. */
export interface Level {
  readonly notPrompt: Readonly<Record<string, Reason>>
  /** Members whose names are form, and do not count. */
  readonly read: Readonly<Record<string, Reading>>
  /** Finds media that an object of this kind is about. */
  readonly media?: FindMedia
}

/** Media of a part: what they count as, and the data, if they are in the request. */
export interface FoundMedia {
  readonly tokens: MediaTokens
  readonly data: Node | undefined
  /** Media type and name, where stated. */
  readonly type?: string | undefined
  readonly name?: string | undefined
}

/** Finds the media of a part; undefined for any other object. */
export type FindMedia = (scan: ScannedObject, part: Node) => FoundMedia | undefined

/**
 * Prompt of a form of request: all texts but those of members that a level lists as none, those of
 * unknown members included. `request` is the outermost level.
 */
export interface PromptLevels {
  readonly levels: Readonly<Record<string, Level>> & { readonly request: Level }
  /** The member with the turns, which is read last: it grows at its end, and counts of its start recur. */
  readonly turns: string
  /** The usual spelling of a name, where there are several. */
  readonly spelled?: (name: string) => string
  /** Numbers are tokens. */
  readonly hasTokenIds?: true
  /** Its turns are messages, each with a mark of its own. */
  readonly isFramed?: true
}

/** Members by which OpenAI's endpoints are told how to serve a request. */
export const SERVICE_OF_OPENAI = {
  model: 'service',
  stream: 'service',
  stream_options: 'service',
  store: 'service',
  service_tier: 'service',
  parallel_tool_calls: 'service',
  prompt_cache_key: 'metadata',
  prompt_cache_retention: 'service',
  prompt_cache_options: 'service',
  metadata: 'metadata',
  user: 'metadata',
  safety_identifier: 'metadata',
} as const
