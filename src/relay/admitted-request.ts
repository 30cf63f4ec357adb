import type { Rate } from '../domain/price.ts'
import type { Group } from '../domain/records/group.ts'
import type { Model } from '../domain/records/model.ts'
import type { Settings } from '../domain/settings.ts'
import type { ChannelRequest, Dialect, RelayedRequest } from './dialects/dialect.ts'
import type { Estimate } from './estimate.ts'

/** A checked request for one model, and the terms that it is admitted on. */
export interface AdmittedRequest {
  /** The client's protocol. */
  readonly dialect: Omit<Dialect, 'read'>
  readonly request: RelayedRequest
  /** The client's own bytes. */
  readonly body: Buffer
  /** Takes memory for more bytes until the call ends; throws `overloaded` without any for its client. */
  readonly takeMemory: (bytes: number) => void
  readonly settings: Settings
  /** The model that the client asked for. */
  readonly asked: Model
  /** That one, or a fallback of it. */
  readonly model: Model
  readonly group: Pick<Group, 'name' | 'budget'>
  readonly rate: Rate
  readonly estimate: Estimate
  /** In the order in which to try the channels; never empty. */
  readonly channelRequests: readonly ChannelRequest[]
}
