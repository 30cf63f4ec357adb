import { Button, Group } from '@mantine/core'
import { IconPlus } from '@tabler/icons-react'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { type Receiver, receiversQuery, removeReceiver } from '../../api/alerts.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { FormSection } from '../../components/form-section.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { AddReceiverDialog } from './add-receiver-dialog.tsx'
import { ReceiverTestButton } from './receiver-test-button.tsx'

/**
 * The receivers of alerts, which can be added, tested and removed. Receivers from gateway.yaml can only be
 * tested.
 */
export function AlertsSection() {
  const { settings } = useTexts()
  const { alerts } = settings
  const { profile } = useSignedInAccount()
  const client = useQueryClient()
  const [isAdding, setIsAdding] = useState(false)
  const [toRemove, setToRemove] = useState<Receiver>()
  const columns = useColumns(setToRemove)
  const reload = () => client.invalidateQueries({ queryKey: receiversQuery(profile.id).queryKey })
  return (
    <FormSection id="alerts" title={alerts.title} text={alerts.hint} isWide>
      <QueryResult query={useQuery(receiversQuery(profile.id))} rows={2}>
        {(receivers) =>
          receivers.length === 0 ? (
            <EmptyState text={alerts.empty} />
          ) : (
            <DataTable label={alerts.table} columns={columns} rows={receivers} keyOf={({ id }) => id} />
          )
        }
      </QueryResult>
      <Button
        style={{ alignSelf: 'start' }}
        variant="default"
        leftSection={<IconPlus size={16} aria-hidden />}
        onClick={() => setIsAdding(true)}
      >
        {alerts.add}
      </Button>
      <AddReceiverDialog opened={isAdding} onAdded={reload} onClose={() => setIsAdding(false)} />
      <ConfirmDialog
        opened={toRemove !== undefined}
        title={alerts.remove}
        text={alerts.removeText(toRemove?.host ?? '')}
        label={alerts.remove}
        onConfirm={async () => {
          if (toRemove) await removeReceiver(toRemove.id)
          await reload()
        }}
        onClose={() => setToRemove(undefined)}
      />
    </FormSection>
  )
}

function useColumns(onRemove: (receiver: Receiver) => void): readonly Column<Receiver>[] {
  const { settings, common } = useTexts()
  const { alerts } = settings
  return [
    {
      key: 'host',
      label: alerts.host,
      phone: 'title',
      cell: ({ host, managed }) => (managed ? `${host} (${settings.fromFile})` : host),
    },
    {
      key: 'events',
      label: alerts.events,
      cell: ({ events }) => <span style={{ whiteSpace: 'normal' }}>{events.join(', ')}</span>,
    },
    { key: 'waiting', label: alerts.waiting, isNumber: true, cell: ({ waiting }) => waiting },
    {
      key: 'last',
      label: alerts.last,
      cell: ({ last }) =>
        last ? (
          <>
            <TimeText at={last.at} /> {last.type} {last.message || last.status}
          </>
        ) : (
          common.never
        ),
    },
    {
      key: 'actions',
      label: common.actions,
      isLabelHidden: true,
      phone: 'actions',
      cell: (receiver) => <ReceiverActions receiver={receiver} onRemove={() => onRemove(receiver)} />,
    },
  ]
}

function ReceiverActions({
  receiver: { id, managed },
  onRemove,
}: {
  readonly receiver: Receiver
  readonly onRemove: () => void
}) {
  const { alerts } = useTexts().settings
  return (
    <Group gap="xs" justify="flex-end">
      <ReceiverTestButton id={id} size="xs" />
      {!managed && (
        <Button variant="default" size="xs" onClick={onRemove}>
          {alerts.remove}
        </Button>
      )}
    </Group>
  )
}
