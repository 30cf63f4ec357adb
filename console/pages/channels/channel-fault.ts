/** The part of a channel that a failed test points to. */
export type ChannelFault = 'address' | 'key' | 'model' | 'upstream'

const STATUS = /\banswered (\d{3})\b/

/** Determines the faulty part of a channel by the gateway's message of a failed test. */
export function channelFaultOf(message: string): ChannelFault {
  const status = Number(STATUS.exec(message)?.[1])
  if (Number.isNaN(status)) return 'address'
  if (status === 401 || status === 403) return 'key'
  return status >= 400 && status < 500 && status !== 429 ? 'model' : 'upstream'
}
