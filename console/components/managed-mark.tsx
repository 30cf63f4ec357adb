import { IconLock } from '@tabler/icons-react'
import { useTexts } from '../locales/use-texts.tsx'
import classes from './managed-mark.module.css'

/** A lock beside the name of something that a file declares; the tooltip names the file. */
export function ManagedMark({ by }: { readonly by: string }) {
  const { common } = useTexts()
  return (
    <span className={classes['mark']} role="img" aria-label={common.managed(by)} title={common.managed(by)}>
      <IconLock size={14} aria-hidden />
    </span>
  )
}
