import type { Channel } from '../../api/channels.ts'
import { StateMark } from '../../parts/state-mark.tsx'
import { useTexts } from '../../texts/use-texts.tsx'

const ENABLED = 1

/** Whether calls go to a channel. */
export function ChannelState({ channel: { status } }: { readonly channel: Channel }) {
  const { channels } = useTexts()
  return status === ENABLED ? (
    <StateMark tone="ok" word={channels.works} />
  ) : (
    <StateMark tone="off" word={channels.disabled} />
  )
}
