import type { AttemptEntry } from '../domain/call-detail.ts'
import type { Store } from '../store/store.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'

const DAY_MS = 86_400_000
/** Maximum number of calls that are read, the latest first, so that a start stays cheap. */
const MAX_CALLS = 5_000
/** What the log has in the place of a cause where the client left. The channel did not fail. */
const CLIENT_LEFT = 'caller gone'

/** Fills the statistics of channels with the calls of the usage log that ended in the day before a start. Never rejects. */
export async function restoreChannelMinutes(
  store: Pick<Store, 'read'>,
  minutes: ChannelMinutes,
  startMs: number,
  log: { warn(fields: object, sentence: string): void },
): Promise<void> {
  try {
    await readCalls(store, minutes, startMs)
  } catch (error) {
    const sentence =
      'the statistics of channels begin with this start, because the usage log could not be read'
    log.warn({ err: error }, sentence)
  }
}

async function readCalls(
  store: Pick<Store, 'read'>,
  minutes: ChannelMinutes,
  startMs: number,
): Promise<void> {
  if (!(await store.read('hasCalls'))) return
  const filter = { fromMs: startMs - DAY_MS, beforeMs: startMs }
  const { entries } = await store.read('listUsage', { filter, offset: 0, limit: MAX_CALLS, withTexts: true })
  for (const { attempts, cache, channel, ended_ms: endMs, duration_ms: tookMs } of entries) {
    if (attempts === null) {
      // A kept answer asked no channel.
      if (channel !== '' && cache === '') minutes.restore(channel, endMs, tookMs, null)
      continue
    }
    for (const one of JSON.parse(attempts) as AttemptEntry[]) {
      const atMs = endMs - tookMs + one.started_ms + one.duration_ms
      minutes.restore(one.channel, atMs, one.duration_ms, one.cause === CLIENT_LEFT ? null : one.cause)
    }
  }
}
