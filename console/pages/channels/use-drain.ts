import { useQueryClient } from '@tanstack/react-query'
import { drainChannel } from '../../api/channels.ts'
import { say, sayFailure } from '../../components/notify.tsx'
import { useSignedIn } from '../../components/session.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

/** Returns a function that drains a channel, and offers to undo that. */
export function useDrain(): (
  channel: { readonly id: number; readonly name: string },
  on: boolean,
) => Promise<void> {
  const texts = useTexts()
  const { channels, keys } = texts
  const { profile } = useSignedIn()
  const client = useQueryClient()
  return async function drain({ id, name }, on) {
    try {
      await drainChannel(id, on)
      await Promise.all(
        [
          [profile.id, 'channels'],
          [profile.id, 'channel'],
          [profile.id, 'channel-health'],
          ['shell'],
          ['incidents'],
        ].map((queryKey) => client.invalidateQueries({ queryKey })),
      )
      if (on) say(channels.drained(name), { label: keys.undo, run: () => void drain({ id, name }, false) })
      else say(channels.undrained(name))
    } catch (error) {
      sayFailure(error, texts)
    }
  }
}
