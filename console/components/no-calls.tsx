import { Button } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { useTexts } from '../locales/use-texts.tsx'
import { EmptyState } from './empty-state.tsx'

/** Shown instead of an empty list of calls; a link leads to the page where a call can be made. */
export function NoCalls({ text }: { readonly text: string }) {
  const { common } = useTexts()
  return (
    <EmptyState text={text}>
      <Button component={Link} to="/playground" variant="default">
        {common.openPlayground}
      </Button>
    </EmptyState>
  )
}
