import { Screen } from "../../parts/screen";

export default function Page() {
  return <Screen title="Templates">{null}</Screen>;
}
