import { Button, Progress } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useParams } from '@tanstack/react-router'
import { useState } from 'react'
import { type BatchDetail, batchLinesUrl, batchQuery, cancelBatch } from '../../api/batches.ts'
import { ConfirmDialog } from '../../components/confirm-dialog.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { DetailList } from '../../components/detail-list.tsx'
import { Figures } from '../../components/figures.tsx'
import { showNotice } from '../../components/notify.tsx'
import { ObjectNotFound } from '../../components/object-not-found.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { PageSection } from '../../components/page-section.tsx'
import { QueryResult } from '../../components/query-result.tsx'
import { useFormatters, useSignedInAccount } from '../../components/session.tsx'
import { TimeText } from '../../components/time-text.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { BatchState, endedLines } from './batch-state.tsx'

/** A batch: its progress and cost, the lines that have failed, its results, and a button to cancel it. */
export function BatchPage() {
  const { id = '' } = useParams({ strict: false })
  const { batches } = useTexts()
  const { profile } = useSignedInAccount()
  const query = useQuery(batchQuery(profile.id, id))
  return (
    <QueryResult
      query={query}
      gone={<ObjectNotFound text={batches.gone} to="/batches" label={batches.back} />}
    >
      {(batch) => <OneBatch batch={batch} />}
    </QueryResult>
  )
}

function OneBatch({ batch }: { readonly batch: BatchDetail }) {
  const { batches } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const { count } = useFormatters()
  const client = useQueryClient()
  const [isAsking, setIsAsking] = useState(false)
  const { id, status, total } = batch
  const isOwn = batch.user_id === profile.id
  const left = total - endedLines(batch)
  const mayCancel = status === 'in_progress'
  return (
    <>
      <PageHead
        title={batches.titleOf(id)}
        above={<Link to="/batches">{batches.back}</Link>}
        beside={<BatchState status={status} />}
      >
        {isOwn && batch.has_results && (
          <Button component="a" variant="default" href={batchLinesUrl(id, 'results')} download>
            {batches.results}
          </Button>
        )}
        {isOwn && batch.has_errors && (
          <Button component="a" variant="default" href={batchLinesUrl(id, 'errors')} download>
            {batches.errors}
          </Button>
        )}
        <Button component={Link} variant="default" to="/logs" search={{ period: 'all', batch: id } as never}>
          {batches.inLog}
        </Button>
        {mayCancel && (
          <Button variant="outline" color="red" onClick={() => setIsAsking(true)}>
            {batches.cancel}
          </Button>
        )}
      </PageHead>
      <Progress
        value={total === 0 ? 0 : (100 * endedLines(batch)) / total}
        aria-label={`${batches.progress}: ${batches.progressOf(count(endedLines(batch)), count(total))}`}
      />
      <BatchFigures batch={batch} />
      <DetailList
        rows={[
          [
            batches.user,
            isAdmin ? (
              <Link to="/users/$id" params={{ id: String(batch.user_id) }}>
                {batch.username}
              </Link>
            ) : (
              ''
            ),
          ],
          [batches.key, batch.token_name],
          [batches.endpoint, <code key="endpoint">{batch.endpoint}</code>],
          [batches.model, batch.model ?? batches.several],
          [batches.created, <TimeText key="created" at={batch.created_at} />],
          batch.ended_at === null
            ? [batches.expires, <TimeText key="expires" at={batch.expires_at} />]
            : [batches.ended, <TimeText key="ended" at={batch.ended_at} />],
        ]}
      />
      {batch.errors.length > 0 && <FailedLines errors={batch.errors} />}
      <ConfirmDialog
        opened={isAsking}
        title={batches.cancelTitle}
        text={batches.cancelText(left, count(left))}
        label={batches.cancel}
        onConfirm={async () => {
          await cancelBatch(id)
          await client.invalidateQueries({ queryKey: [profile.id, 'batches'] })
          showNotice(batches.wasCancelled)
        }}
        onClose={() => setIsAsking(false)}
      />
    </>
  )
}

function BatchFigures({ batch }: { readonly batch: BatchDetail }) {
  const { batches } = useTexts()
  const { count, money, exact } = useFormatters()
  const amount = (label: string, quota: number, note?: string) => ({
    label,
    value: money(quota),
    title: exact(quota),
    note,
  })
  const notMade = batch.expired + batch.cancelled
  return (
    <div role="group" aria-label={batches.totals}>
      <Figures
        figures={[
          {
            label: batches.progress,
            value: batches.progressOf(count(endedLines(batch)), count(batch.total)),
          },
          { label: batches.answered, value: count(batch.completed) },
          { label: batches.failed, value: count(batch.failed) },
          ...(notMade > 0 ? [{ label: batches.notMade, value: count(notMade) }] : []),
          amount(batches.cost, batch.quota),
          amount(batches.saved, batch.saved, batches.savedNote),
          ...(batch.held > 0 ? [amount(batches.held, batch.held, batches.heldNote)] : []),
        ]}
      />
    </div>
  )
}

function FailedLines({ errors }: Pick<BatchDetail, 'errors'>) {
  const { batches } = useTexts()
  const { count } = useFormatters()
  const columns: readonly Column<BatchDetail['errors'][number]>[] = [
    { key: 'line', label: batches.customId, phone: 'title', cell: ({ custom_id }) => custom_id },
    { key: 'status', label: 'HTTP', isNumber: true, cell: ({ status }) => status ?? '–' },
    { key: 'code', label: batches.code, cell: ({ code }) => <code>{code}</code> },
    { key: 'message', label: batches.message, cell: ({ message }) => message },
  ]
  return (
    <PageSection title={batches.failedLines} hint={batches.firstFailed(count(errors.length))}>
      <DataTable
        label={batches.failedLines}
        columns={columns}
        rows={errors}
        keyOf={({ custom_id }) => custom_id}
      />
    </PageSection>
  )
}
