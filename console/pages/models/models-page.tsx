import { useQuery } from '@tanstack/react-query'
import { managedModelsQuery, modelsQuery, type PricedModel } from '../../api/models.ts'
import { AnswerOf } from '../../components/answer-of.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { Empty } from '../../components/empty.tsx'
import { FilterField } from '../../components/filter-field.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { useTexts } from '../../locales/use-texts.tsx'
import { ManagedModelTable } from './managed-model-table.tsx'
import classes from './models-page.module.css'

/** The models that the account may call, and their prices; for administrators, all of them. */
export function ModelsPage() {
  const { models } = useTexts()
  const { isAdmin } = useSignedIn()
  const [{ q = '' }, setSearch] = useSearchState()
  const wanted = q.toLowerCase()
  return (
    <>
      <PageHead title={models.title} />
      <Toolbar>
        <FilterField label={models.filter} value={q} onFilter={(text) => setSearch({ q: text })} />
        <p className={classes['unit']}>{models.perMillion}</p>
      </Toolbar>
      {isAdmin ? <AllModels wanted={wanted} /> : <OwnModels wanted={wanted} />}
    </>
  )
}

function AllModels({ wanted }: { readonly wanted: string }) {
  const { models } = useTexts()
  const { profile } = useSignedIn()
  return (
    <AnswerOf query={useQuery(managedModelsQuery(profile.id))} rows={10}>
      {(all) => {
        const found = all.filter(({ model, vendor }) => isWanted(wanted, model, vendor ?? ''))
        return found.length === 0 ? (
          <Empty text={all.length === 0 ? models.empty : models.emptyFiltered} />
        ) : (
          <ManagedModelTable models={found} />
        )
      }}
    </AnswerOf>
  )
}

function OwnModels({ wanted }: { readonly wanted: string }) {
  const { models } = useTexts()
  const { profile } = useSignedIn()
  const columns = useColumns()
  return (
    <AnswerOf query={useQuery(modelsQuery(profile.id))} rows={10}>
      {(all) => {
        const found = all.filter(({ name, vendor }) => isWanted(wanted, name, vendor))
        return found.length === 0 ? (
          <Empty text={all.length === 0 ? models.empty : models.emptyFiltered} />
        ) : (
          <DataTable label={models.title} columns={columns} rows={found} keyOf={({ name }) => name} />
        )
      }}
    </AnswerOf>
  )
}

function isWanted(wanted: string, name: string, vendor: string): boolean {
  return `${name} ${vendor}`.toLowerCase().includes(wanted)
}

function useColumns(): readonly Column<PricedModel>[] {
  const { models } = useTexts()
  const { usd } = useFormats()
  const price = (model: PricedModel, amount: number | undefined): string =>
    model.perCall !== undefined || amount === undefined ? '–' : usd(amount)
  return [
    { key: 'name', label: models.model, phone: 'title', cell: ({ name }) => name },
    { key: 'vendor', label: models.vendor, phone: 'value', cell: ({ vendor }) => vendor },
    {
      key: 'input',
      label: models.input,
      isNumber: true,
      cell: (model) =>
        model.perCall === undefined ? price(model, model.input) : models.perCall(usd(model.perCall)),
    },
    { key: 'output', label: models.output, isNumber: true, cell: (model) => price(model, model.output) },
    { key: 'cached', label: models.cached, isNumber: true, cell: (model) => price(model, model.cached) },
    {
      key: 'protocols',
      label: models.protocols,
      phone: 'hidden',
      cell: ({ protocols }) => protocols.join(', '),
    },
  ]
}
