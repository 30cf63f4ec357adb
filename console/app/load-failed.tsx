import { Button } from '@mantine/core'
import { Link, useLocation } from '@tanstack/react-router'
import { ApiError } from '../api/api-error.ts'
import { PageHead } from '../components/page-head.tsx'
import { ErrorAlert } from '../components/error-alert.tsx'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './load-failed.module.css'

/** Shown instead of a page that could not be loaded. */
export function LoadFailed({ error }: { readonly error: unknown }) {
  const { errors, common } = useTexts()
  return (
    <main className={classes['page']} id="main">
      <PageHead title={errors.failed} />
      <ErrorAlert text={error instanceof ApiError ? error.message : common.reloadHint} />
      <Button mt="lg" onClick={() => location.reload()}>
        {common.reload}
      </Button>
    </main>
  )
}

/** Shown for a URL at which the console has no page. */
export function NotFound() {
  const { common } = useTexts()
  const { pathname } = useLocation()
  return (
    <main className={classes['page']} id="main" key={pathname}>
      <PageHead title={common.notFound} />
      <p>{common.notFoundHint}</p>
      <Link to="/">{common.toStart}</Link>
    </main>
  )
}
