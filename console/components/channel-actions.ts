import type { QueryClient } from '@tanstack/react-query'
import { changeChannel, drainChannel } from '../api/channels.ts'
import type { Texts } from '../locales/use-texts.tsx'
import { showNotice, showFailure } from './notify.tsx'

/** The channel to change. */
interface ActedOn {
  readonly id: number
  readonly name: string
}

const [ENABLED, DISABLED] = [1, 2] as const
/** The first parts of the query keys for data that shows the state of channels. */
const CHANGED: ReadonlySet<unknown> = new Set([
  'channels',
  'channel',
  'channel-keys',
  'channel-health',
  'shell',
  'incidents',
])

/** Reloads all data that shows the state of channels. */
export async function reloadChannels(client: QueryClient): Promise<void> {
  await client.invalidateQueries({ predicate: ({ queryKey }) => queryKey.some((part) => CHANGED.has(part)) })
}

/** Stops or resumes sending new calls to a channel. Stopping shows a button that undoes it. */
export async function setChannelDraining(
  client: QueryClient,
  texts: Texts,
  channel: ActedOn,
  on: boolean,
): Promise<void> {
  const { channels, keys } = texts
  try {
    await drainChannel(channel.id, on)
    await reloadChannels(client)
    if (on)
      showNotice(channels.drained(channel.name), {
        label: keys.undo,
        run: () => void setChannelDraining(client, texts, channel, false),
      })
    else showNotice(channels.undrained(channel.name))
  } catch (error) {
    showFailure(error, texts)
  }
}

/** Disables a channel, with a button to undo that, or enables it. */
export async function setChannelEnabled(
  client: QueryClient,
  texts: Texts,
  channel: ActedOn,
  isEnabled: boolean,
): Promise<void> {
  try {
    await changeChannel(channel.id, { status: isEnabled ? ENABLED : DISABLED })
    await reloadChannels(client)
    if (!isEnabled)
      showNotice(texts.channels.switchedOff(channel.name), {
        label: texts.keys.undo,
        run: () => void setChannelEnabled(client, texts, channel, true),
      })
  } catch (error) {
    showFailure(error, texts)
  }
}
