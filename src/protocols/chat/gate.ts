import type { Channel } from '../../domain/channel.ts'
import type { ScannedObject } from '../json-scan.ts'
import type { ChatRequest } from './request.ts'

/** A request as it goes to a channel. */
export interface GatedRequest {
  /** The caller's own Buffer where nothing had to change. */
  readonly body: Buffer
  /** The model's name as the upstream knows it. */
  readonly upstreamModel: string
  /** The gateway asked for usage on its own account: the frame that brings it is not the caller's. */
  readonly askedForUsage: boolean
}

/**
 * The request for a channel of the caller's protocol: mapped model, filtered fields removed, usage asked for.
 * `passThrough` is the gateway's option; the channel's own flag is read from the channel.
 */
export function gateChatRequest(
  _scan: ScannedObject,
  _request: ChatRequest,
  _channel: Channel,
  _passThrough: boolean,
): GatedRequest {
  throw new Error('not yet')
}
