import { type ChannelEventFacts, channelCauseOf, statusInCause } from '../domain/channel-cause.ts'
import { declaredId } from '../domain/channel-id.ts'
import type { Channel } from '../domain/records/channel.ts'
import type { Settings } from '../domain/settings.ts'
import type { ChannelMinutes } from '../upstreams/channel-minutes.ts'
import type { KeyRings } from '../upstreams/key-ring.ts'

/** What is known of channels for their events. */
interface ChannelEventSources {
  readonly settings: () => Settings
  readonly keyRings: Pick<KeyRings, 'rests'>
  readonly minutes: Pick<ChannelMinutes, 'lastError' | 'recent'>
}

/** Facts about these channels for their events, by name. `docs/operations.md: Alerts`. */
export function aboutChannels(
  { settings, keyRings, minutes }: ChannelEventSources,
  names: readonly string[],
): Readonly<Record<string, ChannelEventFacts>> {
  const { channels, options } = settings()
  const factsOf = (channel: Channel): ChannelEventFacts => {
    const { name, models } = channel
    const fault = keyRings.rests.faultOf(channel)
    const words = fault?.cause ?? minutes.lastError(name)?.cause ?? ''
    const facts = {
      cause: fault && fault.kind !== 'limited' ? fault.kind : channelCauseOf(words),
      status: statusInCause(words),
      models,
      calls_lost: minutes.recent(name).lost,
    }
    const { public_url: origin, base_path: basePath } = options
    return origin === '' ? facts : { ...facts, url: origin + basePath + pageOf(channel) }
  }
  const asked = new Set(names)
  const found = channels.filter(({ name }) => asked.has(name))
  return Object.fromEntries(found.map((channel) => [channel.name, factsOf(channel)]))
}

/** The page of a channel in the console. A channel that was set over HTTP is found by its name. */
function pageOf({ name, isSetOverHttp }: Channel): string {
  if (isSetOverHttp) return `/channels?q=${encodeURIComponent(name)}`
  return `/channels/${declaredId(name)}`
}
