import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { modelsQuery, type PricedModel } from '../../api/models.ts'
import { QueryResult } from '../../components/query-result.tsx'
import { type Column, DataTable } from '../../components/data-table.tsx'
import { EmptyState } from '../../components/empty-state.tsx'
import { useSignedInAccount } from '../../components/session.tsx'
import { usePriceText } from '../../components/use-price-text.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import classes from './overview-page.module.css'

const MAX_SHOWN = 12

/** The models that the account may call, and what they cost. */
export function AvailableModels() {
  const { overview, models } = useTexts()
  const { profile } = useSignedInAccount()
  const price = usePriceText()
  const columns: readonly Column<PricedModel>[] = [
    { key: 'model', label: models.model, phone: 'title', cell: ({ name }) => name },
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
  ]
  return (
    <section aria-label={overview.callable}>
      <h2 className={classes['heading']}>
        {overview.callable}
        <span>{overview.perMillion}</span>
        <Link to="/models">{overview.allModels}</Link>
      </h2>
      <QueryResult query={useQuery(modelsQuery(profile.id))}>
        {(all) =>
          all.length === 0 ? (
            <EmptyState text={overview.noModels} />
          ) : (
            <DataTable
              label={overview.callable}
              columns={columns}
              rows={all.slice(0, MAX_SHOWN)}
              keyOf={({ name }) => name}
            />
          )
        }
      </QueryResult>
    </section>
  )
}
