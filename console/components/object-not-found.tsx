import { Button } from '@mantine/core'
import { Link, type LinkProps } from '@tanstack/react-router'
import { PageHead } from './page-head.tsx'

/**
 * Shown instead of an object that does not exist or belongs to another account: a sentence and a link to the
 * list.
 */
export function ObjectNotFound({
  text,
  to,
  label,
}: {
  readonly text: string
  readonly to: NonNullable<LinkProps['to']>
  readonly label: string
}) {
  return (
    <>
      <PageHead title={text} />
      <Button component={Link} to={to} variant="default">
        {label}
      </Button>
    </>
  )
}
