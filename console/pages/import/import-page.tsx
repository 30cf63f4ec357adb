import { Button } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { IMPORT_KINDS } from '../../../src/domain/import-line.ts'
import { applyImport, type ImportReport, type ImportResult, previewImport } from '../../api/imports.ts'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { Pager } from '../../components/pager.tsx'
import { RefusalMessage } from '../../components/refusal-message.tsx'
import { useFormatters } from '../../components/session.tsx'
import { StateMark, type StateSeverity } from '../../components/state-mark.tsx'
import { useAction } from '../../components/use-action.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './import-page.module.css'

/** The number of lines of the report on a page. */
const PAGE_SIZE = 100

/** Imports users, keys, channels and prices of another gateway. */
export function ImportPage() {
  const texts = useTexts()
  const { imports } = texts
  const client = useQueryClient()
  const [file, setFile] = useState<File>()
  const [report, setReport] = useState<ImportReport | ImportResult>()
  const reading = useAction(async () => {
    if (!file) return
    setReport(undefined)
    setReport(await previewImport(file))
  })
  const applying = useAction(async (id: string) => {
    setReport(await applyImport(id))
    await client.invalidateQueries()
  })
  return (
    <>
      <PageHead title={imports.title} above={<Link to="/settings">{texts.settings.title}</Link>} />
      <p className={classes['hint']}>{imports.hint}</p>
      <form
        className={classes['form']}
        onSubmit={(event) => {
          event.preventDefault()
          void reading.run()
        }}
      >
        <label>
          {imports.file}
          {/* The browser's own field would be in its language. */}
          <span className={classes['chosen']} aria-hidden>
            <span>{imports.choose}</span> {file?.name ?? imports.none}
          </span>
          <input
            type="file"
            required
            aria-label={imports.file}
            onChange={({ currentTarget: { files } }) => {
              setFile(files?.[0])
              setReport(undefined)
            }}
          />
        </label>
        <Button type="submit" disabled={!file} loading={reading.isRunning}>
          {imports.read}
        </Button>
      </form>
      <RefusalMessage error={reading.error ?? applying.error} />
      {report && (
        <Report
          key={report.id}
          report={report}
          isApplying={applying.isRunning}
          onApply={() => void applying.run(report.id)}
        />
      )}
    </>
  )
}

function Report({
  report,
  isApplying,
  onApply,
}: {
  readonly report: ImportReport | ImportResult
  readonly isApplying: boolean
  readonly onApply: () => void
}) {
  const { imports } = useTexts()
  const { count } = useFormatters()
  const [page, setPage] = useState(1)
  const { lines, source, lines_left_off: leftOff, passwords_left: passwords } = report
  const summary = IMPORT_KINDS.map((kind) => ({ kind, ...report.counts[kind] })).filter(
    ({ carried, changed, there, left }) => carried + changed + there + left > 0,
  )
  const isApplied = 'failed' in report
  return (
    <>
      <div className={classes['facts']}>
        <p role="status">
          {isApplied
            ? imports.applied(report.failed, count(report.failed))
            : imports.readFrom(imports.sources[source])}
        </p>
        {isApplied ? (
          <Link to="/channels">{imports.toChannels}</Link>
        ) : (
          <Button loading={isApplying} onClick={onApply}>
            {imports.apply}
          </Button>
        )}
      </div>
      {passwords > 0 && <p className={classes['hint']}>{imports.passwords(passwords, count(passwords))}</p>}
      {report.units_converted !== null && <p className={classes['hint']}>{report.units_converted}</p>}
      <div className={classes['summary']}>
        <DataTable
          label={imports.summary}
          columns={useSummaryColumns()}
          rows={summary}
          keyOf={({ kind }) => kind}
        />
      </div>
      <DataTable
        label={imports.report}
        columns={useLineColumns()}
        rows={lines
          .slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)
          .map((line, place) => ({ ...line, place }))}
        keyOf={({ place }) => place}
      />
      <Pager page={page} pageSize={PAGE_SIZE} total={lines.length} onPage={setPage} />
      {leftOff > 0 && <p className={classes['hint']}>{imports.leftOff(leftOff, count(leftOff))}</p>}
    </>
  )
}

type Line = ImportReport['lines'][number] & { readonly place: number }

const TONES: Readonly<Record<Line['fate'], StateSeverity>> = {
  carried: 'ok',
  changed: 'warn',
  there: 'off',
  left: 'bad',
}

function useLineColumns(): readonly Column<Line>[] {
  const { imports } = useTexts()
  return [
    { key: 'kind', label: imports.kind, cell: ({ kind }) => imports.kinds[kind] },
    { key: 'name', label: imports.name, phone: 'title', cell: ({ name }) => name },
    {
      key: 'fate',
      label: imports.result,
      phone: 'value',
      cell: ({ fate }) => <StateMark tone={TONES[fate]} word={imports.fates[fate]} />,
    },
    { key: 'remark', label: imports.remark, cell: ({ remark }) => remark },
  ]
}

type Count = { readonly kind: Line['kind'] } & Readonly<Record<Line['fate'], number>>

function useSummaryColumns(): readonly Column<Count>[] {
  const { imports } = useTexts()
  const { count } = useFormatters()
  const number = (fate: Line['fate']): Column<Count> => ({
    key: fate,
    label: imports.fates[fate],
    isNumber: true,
    cell: (row) => count(row[fate]),
  })
  return [
    { key: 'kind', label: imports.kind, phone: 'title', cell: ({ kind }) => imports.kinds[kind] },
    number('carried'),
    number('changed'),
    number('there'),
    number('left'),
  ]
}
