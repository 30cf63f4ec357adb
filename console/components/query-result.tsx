import { Button, Skeleton } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './query-result.module.css'
import { ErrorAlert } from './error-alert.tsx'

const SKELETON_AFTER_MS = 150

/** Shows the data of a query, a placeholder for its rows while it is loading, or the error. */
export function QueryResult<Data>({
  query,
  rows = 5,
  gone,
  children,
}: {
  readonly query: UseQueryResult<Data>
  /** The number of rows of the placeholder. */
  readonly rows?: number
  /** Shown instead of the data if the object does not exist. */
  readonly gone?: ReactNode
  readonly children: (data: Data) => ReactNode
}) {
  const failed = useRef<{ readonly at: number; readonly error: Error }>(undefined)
  if (query.error) failed.current = { at: query.errorUpdatedAt, error: query.error }
  if (query.data !== undefined) return children(query.data)
  // While it is loaded again, a query has no error.
  const error = failed.current?.at === query.errorUpdatedAt ? failed.current.error : query.error
  if (gone !== undefined && error instanceof ApiError && error.isNotFound) return gone
  if (error) return <Failure error={error} onRetry={() => void query.refetch()} />
  return <Rows count={rows} />
}

/** Why data could not be loaded, with a button to try again. */
function Failure({ error, onRetry }: { readonly error: Error; readonly onRetry: () => void }) {
  const { errors, common } = useTexts()
  const apiError = error instanceof ApiError ? error : undefined
  return (
    <ErrorAlert text={errors.failed}>
      <details className={classes['details']}>
        <summary>{common.details}</summary>
        <p>{error.message}</p>
        {apiError?.requestId !== undefined && <p>{common.requestId(apiError.requestId)}</p>}
      </details>
      <Button variant="default" onClick={onRetry}>
        {common.tryAgain}
      </Button>
    </ErrorAlert>
  )
}

function Rows({ count }: { readonly count: number }) {
  const { common } = useTexts()
  const [isShown, setIsShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setIsShown(true), SKELETON_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <div className={classes['rows']} role="status" aria-label={common.loading}>
      {isShown &&
        Array.from({ length: count }, (_, index) => <Skeleton key={index} height={12} radius={2} />)}
    </div>
  )
}
