import { Button, Group, Textarea } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import {
  addChannelKeys,
  type ChannelKey,
  channelKeysQuery,
  removeChannelKey,
  setKeyState,
} from '../../api/channel-keys.ts'
import type { Channel } from '../../api/channels.ts'
import { reloadChannels } from '../../components/channel-actions.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { DataTable } from '../../components/data-table.tsx'
import { showFailure } from '../../components/notify.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { RemainingKeyLimits, KeyLimitResetTime } from './key-limits.tsx'
import classes from './channels-page.module.css'

const REFRESH_MS = 30_000

const TONES = { works: 'ok', set_aside: 'bad', retired: 'off' } as const

/**
 * The keys of a channel with their states. The keys of a channel from gateway.yaml cannot be changed here.
 */
export function ChannelKeys({ channel }: { readonly channel: Pick<Channel, 'id' | 'managed'> }) {
  const texts = useTexts()
  const { channels, common, channelKeys: t } = texts
  const { profile } = useSignedInAccount()
  const { count } = useFormatters()
  const client = useQueryClient()
  const query = useQuery(channelKeysQuery(profile.id, channel.id, REFRESH_MS))
  const [isAdding, setIsAdding] = useState(false)
  const [toRemove, setToRemove] = useState<ChannelKey>()
  const reload = (): Promise<void> => reloadChannels(client)
  const change = async (id: string, state: 'works' | 'retired'): Promise<void> => {
    try {
      await setKeyState(channel.id, id, state)
      await reload()
    } catch (error) {
      showFailure(error, texts)
    }
  }
  return (
    <section aria-label={channels.keys} className={classes['health']}>
      <Group justify="space-between" mb="xs">
        <h2>{channels.keys}</h2>
        {!channel.managed && (
          <Button
            variant="default"
            size="xs"
            leftSection={<IconPlus size={14} aria-hidden />}
            onClick={() => setIsAdding(true)}
          >
            {t.add}
          </Button>
        )}
      </Group>
      <QueryResult query={query} rows={2}>
        {(keys) => (
          <DataTable
            label={channels.keys}
            rows={keys}
            keyOf={({ id }) => id}
            columns={[
              {
                key: 'position',
                label: t.position,
                isNumber: true,
                cell: ({ id, state }) => (state === 'retired' ? '–' : count(positionOf(keys, id))),
              },
              { key: 'key', label: t.key, phone: 'title', cell: ({ key }) => <code>{key}</code> },
              {
                key: 'state',
                label: channels.state,
                phone: 'value',
                cell: (one) => <KeyState {...one} />,
              },
              {
                key: 'since',
                label: t.since,
                cell: ({ since }) => (since === null ? '–' : <TimeText at={since} />),
              },
              { key: 'left', label: t.left, cell: (one) => <RemainingKeyLimits {...one} /> },
              { key: 'reset', label: t.reset, cell: (one) => <KeyLimitResetTime {...one} /> },
              { key: 'calls', label: channels.calls, isNumber: true, cell: (one) => count(one.calls_hour) },
              {
                key: 'actions',
                label: common.actions,
                isLabelHidden: true,
                phone: 'actions',
                cell: (one) =>
                  !channel.managed && (
                    <Group gap="xs" justify="flex-end" wrap="nowrap">
                      {one.state !== 'retired' && (
                        <Button variant="default" size="xs" onClick={() => void change(one.id, 'retired')}>
                          {t.retire}
                        </Button>
                      )}
                      {one.state !== 'works' && (
                        <Button variant="default" size="xs" onClick={() => void change(one.id, 'works')}>
                          {t.useAgain}
                        </Button>
                      )}
                      <Button variant="subtle" color="red" size="xs" onClick={() => setToRemove(one)}>
                        {t.remove}
                      </Button>
                    </Group>
                  ),
              },
            ]}
          />
        )}
      </QueryResult>
      <AddKeys
        opened={isAdding}
        onAdd={async (text) => {
          await addChannelKeys(channel.id, text)
          await reload()
        }}
        onClose={() => setIsAdding(false)}
      />
      <ConfirmDialog
        opened={toRemove !== undefined}
        title={t.removeTitle}
        text={toRemove ? t.removeText(toRemove.key) : ''}
        label={t.remove}
        onConfirm={async () => {
          if (toRemove) await removeChannelKey(channel.id, toRemove.id)
          await reload()
        }}
        onClose={() => setToRemove(undefined)}
      />
    </section>
  )
}

function KeyState({ state, cause }: Pick<ChannelKey, 'state' | 'cause'>) {
  const { channelKeys: t } = useTexts()
  const word = t.states[state]
  return <StateMark tone={TONES[state]} word={cause === null ? word : t.because(word, cause)} />
}

/** The position of a key in its channel, counted from 1; metrics use the same number. */
function positionOf(keys: readonly ChannelKey[], id: string): number {
  return keys.findIndex((one) => one.id === id) + 1
}

function AddKeys({
  opened,
  onAdd,
  onClose,
}: {
  readonly opened: boolean
  readonly onAdd: (text: string) => Promise<void>
  readonly onClose: () => void
}) {
  const { channels, common, channelKeys: t } = useTexts()
  const [text, setText] = useState('')
  const close = (): void => {
    setText('')
    onClose()
  }
  const adding = useAction(async () => {
    await onAdd(text)
    close()
  })
  return (
    <FormDialog opened={opened} onClose={close} title={t.add}>
      <Textarea
        label={channels.apiKeys}
        description={channels.apiKeysHint}
        autosize
        minRows={2}
        maxRows={8}
        spellCheck={false}
        autoComplete="off"
        data-autofocus
        value={text}
        onChange={({ currentTarget: { value } }) => setText(value)}
      />
      <RefusalMessage error={adding.error} />
      <Group justify="flex-end" mt="lg" gap="sm">
        <Button variant="default" onClick={close}>
          {common.cancel}
        </Button>
        <Button loading={adding.isRunning} disabled={text.trim() === ''} onClick={() => void adding.run()}>
          {t.add}
        </Button>
      </Group>
    </FormDialog>
  )
}
