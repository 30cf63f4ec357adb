import { Button, Group, MultiSelect, Select, Stack, TextInput } from '@mantine/core'
import { useState } from 'react'
import {
  ALERT_FORMATS,
  ALERT_TYPES,
  type AlertFormat,
  type AlertType,
  mailAddresses,
} from '../../../src/domain/alert.ts'
import { type AddedReceiver, addReceiver } from '../../api/alerts.ts'
import { ApiError } from '../../api/api-error.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useAction } from '../../components/use-action.ts'
import { FormDialog } from '../../components/form-dialog.tsx'
import { FormActions } from '../../components/form-actions.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ReceiverTestButton } from './receiver-test-button.tsx'

/** Adds a receiver of alerts, then shows its secret once, with a button that tests it. */
export function AddReceiverDialog({
  opened,
  onAdded,
  onClose,
}: {
  readonly opened: boolean
  readonly onAdded: () => Promise<void>
  readonly onClose: () => void
}) {
  const { settings } = useTexts()
  const { alerts } = settings
  const [added, setAdded] = useState<AddedReceiver>()
  const close = (): void => {
    setAdded(undefined)
    onClose()
  }
  return (
    <FormDialog opened={opened} onClose={close} title={alerts.add} isDone={added !== undefined}>
      {added === undefined ? (
        <ReceiverForm
          onClose={close}
          onMade={async (made) => {
            setAdded(made)
            await onAdded()
          }}
        />
      ) : (
        <Stack gap="md">
          <TextInput label={alerts.secret} description={alerts.secretHint} readOnly value={added.secret} />
          <Group justify="flex-end" gap="sm">
            <ReceiverTestButton id={added.id} size="sm" />
            <CopyButton text={added.secret} label={alerts.copySecret} />
            <Button onClick={close}>{alerts.done}</Button>
          </Group>
        </Stack>
      )}
    </FormDialog>
  )
}

function ReceiverForm({
  onMade,
  onClose,
}: {
  readonly onMade: (added: AddedReceiver) => Promise<void>
  readonly onClose: () => void
}) {
  const { settings } = useTexts()
  const { alerts } = settings
  const [url, setUrl] = useState('')
  const [events, setEvents] = useState<string[]>([...ALERT_TYPES])
  const [format, setFormat] = useState<AlertFormat>('standard')
  const isMail = mailAddresses(url.trim()) !== undefined
  const adding = useAction(async () =>
    onMade(await addReceiver(url.trim(), isMail ? 'standard' : format, events as AlertType[])),
  )
  const { error } = adding
  const field = error instanceof ApiError ? error.field : undefined
  const atField = field === 'url' || field === 'events'
  return (
    <form
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        event.stopPropagation()
        void adding.run()
      }}
    >
      <Stack gap="md">
        <TextInput
          label={alerts.url}
          description={alerts.urlHint}
          data-autofocus
          inputMode="url"
          value={url}
          error={field === 'url' && (error as ApiError).message}
          onChange={({ currentTarget }) => setUrl(currentTarget.value)}
        />
        <Select
          label={alerts.format}
          data={ALERT_FORMATS.map((value) => ({ value, label: alerts.formats[value] }))}
          value={format}
          disabled={isMail}
          allowDeselect={false}
          onChange={(value) => value && setFormat(value)}
        />
        <MultiSelect
          label={alerts.events}
          data={ALERT_TYPES}
          value={events}
          error={field === 'events' && (error as ApiError).message}
          onChange={setEvents}
        />
        {!atField && <RefusalMessage error={error} />}
      </Stack>
      <FormActions label={alerts.add} isRunning={adding.isRunning} onCancel={onClose} />
    </form>
  )
}
