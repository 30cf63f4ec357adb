import { Button } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { IconFilter } from '@tabler/icons-react'
import { type ReactNode, useState } from 'react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './toolbar.module.css'

/** Filters above a table. */
export function Toolbar({ children }: { readonly children: ReactNode }) {
  return <div className={classes['toolbar']}>{children}</div>
}

/**
 * Filters above a table. On phones they are hidden behind a button that shows how many (`set`) are in use.
 */
export function CollapsibleToolbar({
  set,
  children,
}: {
  readonly set: number
  readonly children: ReactNode
}) {
  const { common } = useTexts()
  const isNarrow = useMediaQuery('(width < 640px)', undefined, { getInitialValueInEffect: false })
  const [isOpen, setIsOpen] = useState(false)
  if (!isNarrow) return <Toolbar>{children}</Toolbar>
  return (
    <>
      <Button
        variant="default"
        fullWidth
        mb={12}
        leftSection={<IconFilter size={16} aria-hidden />}
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        {common.filters(set)}
      </Button>
      {isOpen && <Toolbar>{children}</Toolbar>}
    </>
  )
}
