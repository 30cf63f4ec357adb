import { Button, Select, Switch } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type ManagedModel, managedModelsQuery, modelsQuery, type PricedModel } from '../../api/models.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { TruncatedText } from '../../components/truncated-text.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { FilterField } from '../../components/filter-field.tsx'
import { PageHead } from '../../components/page-head.tsx'
import { useSearchState } from '../../components/search-state.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { Toolbar } from '../../components/toolbar.tsx'
import { usePriceText } from '../../components/use-price-text.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import { EditPriceDialog } from './edit-price-dialog.tsx'
import { ManagedModelTable } from './managed-model-table.tsx'
import { ModelRetirementMark } from './model-retirement.tsx'
import classes from './models-page.module.css'
import { useServicePriceText } from './use-service-price-text.ts'

/** The models that the account may call, and their prices; for administrators, all of them. */
export function ModelsPage() {
  const { models } = useTexts()
  const { isAdmin, display } = useSignedInAccount()
  const [{ q = '' }, setSearch] = useSearchState()
  const wanted = q.toLowerCase()
  return (
    <>
      <PageHead title={models.title} />
      <Toolbar>
        <FilterField label={models.filter} value={q} onFilter={(text) => setSearch({ q: text })} />
        <p className={classes['unit']}>{models.perMillion(display.kind === 'CNY' ? 'CNY' : 'USD')}</p>
      </Toolbar>
      {isAdmin ? <AllModels wanted={wanted} /> : <OwnModels wanted={wanted} />}
    </>
  )
}

function AllModels({ wanted }: { readonly wanted: string }) {
  const { models } = useTexts()
  const { profile, isRoot } = useSignedInAccount()
  const [{ vendor = '', unpriced, edit }, setSearch] = useSearchState()
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set())
  const [edited, setEdited] = useState<readonly ManagedModel[]>([])
  return (
    <QueryResult query={useQuery(managedModelsQuery(profile.id))} rows={10}>
      {(all) => {
        const found = all.filter(
          (one) =>
            isWanted(wanted, one.model, one.vendor ?? '') &&
            (vendor === '' || (one.vendor ?? '') === vendor) &&
            (unpriced === undefined || one.price === null),
        )
        const chosen = found.filter(({ model }) => ticked.has(model))
        return (
          <>
            <Toolbar>
              <Select
                label={models.vendor}
                placeholder={models.allVendors}
                searchable
                clearable
                data={[...new Set(all.flatMap((one) => one.vendor ?? []))].toSorted()}
                value={vendor || null}
                onChange={(name) => setSearch({ vendor: name ?? undefined })}
              />
              <Switch
                label={models.sources.none}
                checked={unpriced !== undefined}
                onChange={({ currentTarget: { checked } }) =>
                  setSearch({ unpriced: checked ? '1' : undefined })
                }
              />
              {isRoot && (
                <Button disabled={chosen.length === 0} onClick={() => setEdited(chosen)}>
                  {models.setPrice}
                </Button>
              )}
            </Toolbar>
            {found.length === 0 ? (
              <EmptyState text={all.length === 0 ? models.empty : models.emptyFiltered} />
            ) : (
              <ManagedModelTable
                models={found}
                ticked={ticked}
                onTick={(name, isTicked) =>
                  setTicked(new Set([...ticked, name].filter((one) => isTicked || one !== name)))
                }
              />
            )}
            <EditPriceDialog
              edited={
                edit === undefined
                  ? edited
                  : all.filter(({ model, source }) => isRoot && source !== 'file' && model === edit)
              }
              onClose={() => {
                setEdited([])
                if (edit !== undefined) setSearch({ edit: undefined })
              }}
            />
          </>
        )
      }}
    </QueryResult>
  )
}

function OwnModels({ wanted }: { readonly wanted: string }) {
  const { models } = useTexts()
  const { profile } = useSignedInAccount()
  const columns = useColumns()
  return (
    <QueryResult query={useQuery(modelsQuery(profile.id))} rows={10}>
      {(all) => {
        const found = all.filter(({ name, vendor }) => isWanted(wanted, name, vendor))
        return found.length === 0 ? (
          <EmptyState text={all.length === 0 ? models.empty : models.emptyFiltered} />
        ) : (
          <DataTable label={models.title} columns={columns} rows={found} keyOf={({ name }) => name} />
        )
      }}
    </QueryResult>
  )
}

function isWanted(wanted: string, name: string, vendor: string): boolean {
  return `${name} ${vendor}`.toLowerCase().includes(wanted)
}

function useColumns(): readonly Column<PricedModel>[] {
  const { models, common } = useTexts()
  const price = usePriceText()
  const words: Readonly<Record<string, string>> = models.endpointWords
  const serviceText = useServicePriceText()
  return [
    {
      key: 'name',
      label: models.model,
      phone: 'title',
      cell: ({ name, endsOn }) => (
        <>
          {name} <ModelRetirementMark on={endsOn} />
        </>
      ),
    },
    { key: 'vendor', label: models.vendor, phone: 'value', isOptional: true, cell: ({ vendor }) => vendor },
    {
      key: 'input',
      label: models.input,
      isNumber: true,
      cell: price.input,
    },
    {
      key: 'output',
      label: models.output,
      isNumber: true,
      cell: (model) => price.output(model, model.output),
    },
    {
      key: 'cached',
      label: models.cached,
      isNumber: true,
      cell: (model) => price.tokens(model, model.cached),
    },
    {
      key: 'service',
      label: models.tiersAndRegions,
      phone: 'hidden',
      isOptional: true,
      cell: (model) => <TruncatedText text={serviceText(model)} />,
    },
    {
      key: 'endpoints',
      label: models.endpoints,
      phone: 'hidden',
      cell: ({ endpoints }) => (
        <TruncatedText text={endpoints.map((name) => words[name] ?? name).join(common.comma)} isList />
      ),
    },
  ]
}
