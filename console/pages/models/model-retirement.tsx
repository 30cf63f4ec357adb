import { Button, Modal } from '@mantine/core'
import { type ComponentProps, useState } from 'react'
import type { ManagedModel } from '../../api/models.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { useFormatters } from '../../components/session.tsx'
import { StateMark } from '../../components/state-mark.tsx'
import { useTexts } from '../../locales/use-texts.tsx'

type Caller = ManagedModel['keys_7d'][number]

const DAY_MS = 86_400_000
/** A model that its provider retires in less than this number of days is marked as urgent. */
const URGENT_DAYS = 30

/**
 * A badge with the day on which a model is retired; it opens a list of the keys that still call the model.
 */
export function ModelRetirement({ model }: { readonly model: ManagedModel }) {
  const { models, common } = useTexts()
  const [isOpened, setOpened] = useState(false)
  const columns = useColumns()
  const markOf = useEndMark()
  const { shutdown_date: on, successor, keys_7d: keys } = model
  if (on === null) return undefined
  const mark = markOf(on)
  const { word } = mark
  return (
    <>
      <Button
        variant="subtle"
        size="compact-xs"
        aria-label={`${model.model}: ${word}`}
        onClick={() => setOpened(true)}
      >
        <StateMark {...mark} />
      </Button>
      <Modal
        size="lg"
        opened={isOpened}
        onClose={() => setOpened(false)}
        title={`${model.model}: ${word}`}
        closeButtonProps={{ 'aria-label': common.close }}
      >
        <p>{successor === null ? models.noSuccessor : models.successor(successor)}</p>
        {keys.length === 0 ? (
          <p>{models.noCallers}</p>
        ) : (
          <DataTable label={models.callers} columns={columns} rows={keys} keyOf={({ id }) => id} />
        )}
      </Modal>
    </>
  )
}

/**
 * A badge with the day on which a model is retired; it opens no list, for users who may not see who calls the
 * model.
 */
export function ModelRetirementMark({ on }: { readonly on: string | undefined }) {
  const markOf = useEndMark()
  return on === undefined ? undefined : <StateMark {...markOf(on)} />
}

function useEndMark() {
  const { models } = useTexts()
  return (on: string): ComponentProps<typeof StateMark> => {
    const leftMs = Date.parse(on) - Date.now()
    return {
      tone: leftMs > URGENT_DAYS * DAY_MS ? 'warn' : 'bad',
      word: leftMs > 0 ? models.ends(on) : models.ended(on),
    }
  }
}

function useColumns(): readonly Column<Caller>[] {
  const { models } = useTexts()
  const { count } = useFormatters()
  return [
    { key: 'name', label: models.key, phone: 'title', cell: ({ name }) => name },
    { key: 'user', label: models.user, phone: 'line', cell: ({ username }) => username },
    { key: 'calls', label: models.calls, isNumber: true, phone: 'value', cell: ({ calls }) => count(calls) },
  ]
}
