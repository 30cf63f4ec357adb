import type { Rate } from '../domain/price.ts'
import type { Group } from '../domain/records/group.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { ChannelPlan, Dialect, ParsedRequest } from './dialects/dialect.ts'
import type { Estimate } from './estimate.ts'

/** A checked request for one model, with the terms on which it is admitted. */
export interface Plan {
  /** The client's protocol. */
  readonly dialect: Omit<Dialect, 'read'>
  readonly request: ParsedRequest
  /** The client's body. */
  readonly body: Buffer
  /**
   * Allocates memory for more bytes until the call ends. Throws `overloaded` if none is left for the client.
   */
  readonly takeMemory: (bytes: number) => void
  readonly settings: Settings
  /** The model that the client requested. */
  readonly asked: Model
  /** The requested model or a fallback of it. */
  readonly model: Model
  readonly group: Pick<Group, 'name' | 'budget'>
  readonly rate: Rate
  readonly estimate: Estimate
  /** Requests in the order in which their channels are tried; never empty. */
  readonly channelRequests: readonly ChannelPlan[]
}
