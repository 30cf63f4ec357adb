import { useTexts } from '../locales/use-texts.tsx'
import { useIsConnectionLost } from './connection.ts'
import classes from './connection-lost.module.css'

/** A bar over the page while the gateway does not respond. */
export function ConnectionLost() {
  const { errors } = useTexts()
  return (
    <div role="alert" className={classes['bar']} data-shown={useIsConnectionLost() || undefined}>
      {useIsConnectionLost() && errors.connectionLost}
    </div>
  )
}
