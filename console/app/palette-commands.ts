import { type Icon, IconChartBar, IconCoin, IconPlayerPause, IconPlugConnected } from '@tabler/icons-react'
import { testAllChannels } from '../api/channels.ts'
import type { FoundObject } from '../api/find.ts'
import { setChannelEnabled } from '../components/channel-actions.ts'
import { showNotice, showFailure } from '../components/notify.tsx'
import { valueToUrlText } from '../components/url-values.ts'
import type { Texts } from '../locales/use-texts.tsx'
import { queryClient } from './query-client.ts'

/** An action on an object, typed as a word before the name of the object: `test openai`. */
interface Command {
  readonly kind: FoundObject['kind']
  readonly icon: Icon
  readonly run: (found: FoundObject, texts: Texts, go: (path: string) => void) => Promise<void> | void
}

/**
 * The commands by the word that starts them. Administrators may use all of them, except `price`, which is for
 * root.
 */
export const COMMANDS = {
  disable: {
    kind: 'channel',
    icon: IconPlayerPause,
    run: ({ id, label }, texts) =>
      setChannelEnabled(queryClient, texts, { id: Number(id), name: label }, false),
  },
  test: {
    kind: 'channel',
    icon: IconPlugConnected,
    run: ({ id, label }, texts) => testOne(Number(id), label, texts),
  },
  price: {
    kind: 'model',
    icon: IconCoin,
    run: ({ label }, _, go) => go(`/models?q=${encodeURIComponent(label)}&edit=${encodeURIComponent(label)}`),
  },
  spend: {
    kind: 'user',
    icon: IconChartBar,
    run: ({ label }, _, go) => go(`/usage?user=${encodeURIComponent(valueToUrlText(label))}`),
  },
} as const satisfies Readonly<Record<string, Command>>

/** The word that starts a command. */
export type CommandWord = keyof typeof COMMANDS

/** The command with which a typed text begins, and the rest of the text; undefined if there is none. */
export function parseCommand(
  text: string,
): { readonly word: CommandWord; readonly rest: string } | undefined {
  const [, word = '', rest = ''] = /^(\p{L}+)\s+(.+)$/u.exec(text.trim()) ?? []
  return word.toLowerCase() in COMMANDS ? { word: word.toLowerCase() as CommandWord, rest } : undefined
}

async function testOne(id: number, name: string, texts: Texts): Promise<void> {
  try {
    const result = (await testAllChannels([id])).get(id)
    showNotice(
      result?.success === true
        ? texts.palette.tested(name)
        : texts.palette.testFailed(name, result?.message ?? ''),
    )
  } catch (error) {
    showFailure(error, texts)
  }
}
